"""Studies: many members of a graph, each with an address, kept in a store, none computed twice.

    axes, space     what varies: from lists, grids, draws and fits to a table of members
    study, file     a graph, its members and what is kept of each; `study.toml`
    experiment      columns of parameters to figures and fields, as `run_batch` makes them
    parts           a batch a few members at a time, its figures taken from the cache
    waves           inputs over time whose numbers vary
    address         what a member's result depends on, as a digest
    store, layout   a Zarr store: a region for each chunk, and a mark when it is done
    region, task    one chunk: its members run, its files written
    sweep, cluster  the chunks that are missing, on this machine or on a cluster of Dask's
    result          all of it as one xarray dataset

    dimensions, objectives    where a search looks, and what for
    evaluations     members that are asked for a few at a time, read or run
    slopes          d figure / d parameter through the simulator
    gradient_search, optuna_search, optimise, optimum    how it looks, and what it finds

An evaluation, whoever asks for it, is a member of the store.
"""
