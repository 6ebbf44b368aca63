// Package kube is the engine that runs jobs as pods of a Kubernetes cluster.
//
// The model. One attempt is a root Secret and what belongs to it: a pod for each node or for each
// task, and where there are several a headless Service (driver/kube/render). Names are those of the
// attempt, so what was created without an answer is created again and found. A launch is in the
// driver's journal before anything is sent. All pods are there, and their UIDs in the journal,
// before any is bound, or let go to the cluster's scheduler: for an attempt that may have begun no
// pod is ever created a second time. Each attempt has one goroutine (drive.go) that does what is
// due; one watch of this server's pods in each namespace of the pool tells them all. What runs in
// the pods holds the start barrier and says how it ended (agent/podagent).
//
// Guarantees: an attempt is reported gone only if of each of its pods the kubelet has said that
// its containers have ended, or it never had a node and can get none, or its node left the cluster
// before any kubelet had spoken of it (podstatus, lostBeforeStart, says what that cannot tell). A finalizer keeps each
// pod's object until its end is in the journal. An error or a time-out is no news.
//
// Objects of our names that are not ours are never touched. docs/explanation/design/0011 has the reasons.
//
// The files, by what a change is about:
//
//	kube.go journal.go              the engine; what it keeps on the disk
//	delegation.go                   which jobs are taken, before they are queued
//	nodeconflicts.go                claims and pods for which a job's nodes have no room
//	launch.go create.go names.go      an attempt begins: its objects, its binding, its names
//	calls.go                        calls of the cluster: their time, and how many are under way
//	secrets.go                      the values of its secrets, until the cluster has them
//	provision.go deliver.go         … what it waits for before: volumes, a directory that comes with it
//	delegate.go kueue.go            where the cluster's scheduler chooses the nodes
//	drive.go                        what is due for an attempt, step by step
//	stop.go suspend.go saved.go exec.go     what is asked of one that runs
//	pods.go                         pods as they are watched; what is left of ended attempts, and its end with the pool
//	manifest.go                     jobs with the pods of a manifest: what there is in place of an agent
//	endpoints.go                    where one serves, and its Service for clients
//	report.go logs.go usage.go      what is reported of an attempt and kept of it (driver/kube/podstatus: what a pod proves)
//	namespacequota.go               quotas of namespaces (driver/kube/quota does the arithmetic)
//	claim.go                        devices that are claimed (driver/kube/dra has what drivers publish)
//	reserve.go                      nodes that are kept for the pool
//
// Beside it: settings is what a pool is told, inventory knows the nodes, nodefence closes them, podstatus reads pods, quota does
// the arithmetic of quotas, gang is what begins pods together, preflight what is checked before a pool is added, with the rights and the policy that a
// pool needs, cluster is the client, render makes the objects, manifestpod those of manifests, dra knows devices that are claimed,
// agent/podagent runs in the pods, test/testcluster/kubelab has real clusters for tests.
package kube
