"""Kubernetes objects, as ``kubectl get ... -o json`` prints them, to facts.

``lists`` and ``pages`` read files and pages of lists, ``view.view_of`` makes the ClusterView; ``typed_objects``,
``companions``, ``device_objects`` and ``kueue_workloads`` are the objects, with the fields that are read of them.
``pods/`` and ``nodes/`` make facts of those. An object that cannot be read costs only itself: it becomes a finding,
and in doubt its node is kept. The cluster's adapter and commands on files call it.
"""
