// Package work makes jobs, services and schedules of the documents of a Kubernetes manifest.
//
// The model. Package manifest has read the documents and refused every field that is not read. Here
// each workload document becomes one Work; what stands beside it in the file and is named by it (a
// Service, a HorizontalPodAutoscaler, a ConfigMap, a Secret) becomes part of it. A Work that is a job or
// a replica has a program of kind job.Pods, whose script is a podspec.Set.
//
// What a kind's operator does to the pods of its roles (host names, variables, labels, the command of a
// Ray node) is done here, once, for all engines: the file of each kind says which version of the operator
// it follows. Kinds: pod.go (Pod, Job), jobset.go, training.go (PyTorchJob, MPIJob), volcano.go, ray.go,
// deployment.go (Deployment, StatefulSet), leaderworker.go; beside them request.go has what a pod asks
// for, objects.go what belongs to a work, service.go ports, probes and scaling.
//
// The package is pure: it makes values of values.
package work
