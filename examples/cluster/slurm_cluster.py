"""Sweep a study on nodes of a Slurm cluster: `python slurm_cluster.py study.toml STORE [JOBS]`

Needs `pip install dask-jobqueue 'mime-sim[cluster]'` in the environment that jobs start with, and
STORE in a folder that all nodes see. A job that ends at its time limit loses the chunk under way,
and is replaced. (Not run by MIME's tests: it needs Slurm. It was run by hand under Slurm 22.05.)
"""

import sys

from dask.distributed import Client
from dask_jobqueue import SLURMCluster

import mime


def main() -> None:
    study, store = sys.argv[1:3]
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    cluster = SLURMCluster(
        cores=16,  # of one job: so many batches at a time
        processes=4,  # each with a quarter of them
        memory="32GB",
        walltime="02:00:00",
        job_extra_directives=["--job-name=mime"],
    )
    with cluster, Client(cluster) as client:
        cluster.adapt(minimum_jobs=jobs, maximum_jobs=jobs)  # a job that ended is replaced
        print(mime.sweep(study, out=store, client=client))


if __name__ == "__main__":
    main()
