// Package kueue makes the rules of a site of Kueue's objects: ResourceFlavor, Cohort,
// ClusterQueue, LocalQueue, WorkloadPriorityClass, Topology and its Configuration, as
// YAML of v1beta1 or v1beta2, several documents in a file.
//
// A cohort and a ClusterQueue become accounts with quotas, a flavour of nodes stays
// one. Every field that has a value is in the report: kept, approximated and how,
// elsewhere (it is about Kubernetes), refused and what would do instead. The package
// does no I/O and asks no cluster.
package kueue
