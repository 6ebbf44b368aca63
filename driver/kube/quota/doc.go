// Package quota does the arithmetic of Kubernetes namespaces' quotas and limit ranges.
//
// The model. A Namespace holds the ResourceQuotas and LimitRanges of one namespace as the cluster
// last showed them, the pods that Coxswain is about to create and the cluster has not counted, and
// the jobs that were told to wait. Reserve admits an attempt's pods or says which quota has no room.
// Fairness: a job does not take what jobs before it in the queue wait for, unless it ends before
// they could begin. A job that finds no room although nothing but other people's pods fills the
// quota keeps others waiting for at most a minute.
//
// Guarantees. Everything here is a function of its arguments: no clock, no goroutine, no call to a
// cluster. A quota with a scope that is unknown here is taken not to count a pod.
//
// It does not follow the quotas, and it does not enforce them: the API server has the last word.
// A Namespace is not safe for concurrent use; its owner (driver/kube) locks it.
//
// Files: charge.go (what pods take of a quota), limitrange.go (defaults and limits),
// fairness.go (who may take of a quota while others wait), namespace.go (the state of a namespace).
package quota
