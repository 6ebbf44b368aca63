// Package podstatus reads what a Pod object proves about the part of an attempt that runs in it.
//
// The model. Read turns a pod into a Member: how far it is, whether it is over, how it ended and
// why. DoubtRefusal and OnSilence correct that with what else is known: whether the kubelet had
// admitted the pod before it refused it, and what a list of the nodes showed of the kubelet
// (Kubelets). End sums up the members of an attempt that has ended.
//
// Guarantees. A member is over only if the kubelet said that its containers have ended, if the pod
// never had a node and can get none, if its node left the cluster before any kubelet spoke of the
// pod, or if an administrator says that the node is off. Nothing is concluded from the phase alone.
// Strip keeps every field that the functions of this package read.
//
// Everything here is a function of its arguments: no clock, no goroutine, no call to a cluster.
// It does not decide what to do about a pod (driver/kube does).
//
// Files: status.go (what a pod proves, and how an attempt ended), kubeletrestart.go (refusals by a
// kubelet that restarted), lostnode.go (pods of silent nodes), pendingreason.go (the scheduler's
// messages), strip.go (what is kept of a watched pod).
package podstatus
