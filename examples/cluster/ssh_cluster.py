"""Sweep a study on machines that SSH reaches: `python ssh_cluster.py study.toml STORE HOST ...`

Needs the same Python packages on each, keys that ask for no password, and STORE in a folder that
all of them see by the same path. (Not run by MIME's tests: it needs a server for SSH. It was run by
hand against OpenSSH on one machine.) Needs `pip install asyncssh` here too.
"""

import sys

from dask.distributed import Client, SSHCluster

import mime


def main() -> None:
    study, store, *hosts = sys.argv[1:]
    options = {"nthreads": 0}  # one task for each core
    # The first host is the scheduler's; it is named twice to work as well.
    with (
        SSHCluster([hosts[0], *hosts], worker_options=options) as cluster,
        Client(cluster) as client,
    ):
        print(mime.sweep(study, out=store, client=client))


if __name__ == "__main__":
    main()
