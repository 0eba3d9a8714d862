"""Sweep on Kubernetes: `python kubernetes_cluster.py study.toml STORE IMAGE CLAIM [WORKERS]`

Needs `pip install dask-kubernetes 'mime-sim[cluster]'`, Dask's operator in the cluster, an IMAGE
with the same packages, and a volume CLAIM that many pods may write (ReadWriteMany). Run it in a pod
that has the claim mounted at /store too, STORE being a folder below it. (Not run by MIME's tests:
it needs Kubernetes.)
"""

import sys

from dask.distributed import Client
from dask_kubernetes.operator import KubeCluster, make_cluster_spec

import mime


def main() -> None:
    study, store, image, claim = sys.argv[1:5]
    workers = int(sys.argv[5]) if len(sys.argv) > 5 else 10
    spec = make_cluster_spec(name="mime", image=image, n_workers=workers)
    pod = spec["spec"]["worker"]["spec"]
    pod["volumes"] = [{"name": "store", "persistentVolumeClaim": {"claimName": claim}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "store", "mountPath": "/store"}]
    with KubeCluster(custom_cluster_spec=spec) as cluster, Client(cluster) as client:
        print(mime.sweep(study, out=store, client=client))


if __name__ == "__main__":
    main()
