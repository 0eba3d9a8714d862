"""Sweep a study on nodes of a Slurm cluster: `python slurm_cluster.py study.toml STORE [JOBS]`

Needs `pip install dask-jobqueue 'mime-sim[cluster]'` in the environment that jobs start with, and
STORE in a folder that all nodes see. Jobs that end at their time limit lose the batch under way;
start again to go on. (Not run by MIME's tests: it needs Slurm.)
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
        cluster.adapt(maximum_jobs=jobs)
        print(mime.sweep(study, out=store, client=client))


if __name__ == "__main__":
    main()
