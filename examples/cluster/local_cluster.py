"""Sweep a study on workers of this machine: `python local_cluster.py study.toml STORE [WORKERS]`

To try what a cluster would do. On one machine alone `mime sweep study.toml` is simpler and faster.
"""

import sys

from dask.distributed import Client, LocalCluster

import mime


def main() -> None:
    study, store = sys.argv[1:3]
    workers = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    # Workers are started afresh (spawn), never forked: JAX's threads would be missing in a fork.
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        print(mime.sweep(study, out=store, client=client, progress=False))


if __name__ == "__main__":
    main()
