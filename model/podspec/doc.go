// Package podspec has the pods of a Kubernetes manifest as a job carries them, in the form that every
// engine reads.
//
// The model. A manifest's work (a Job, a PyTorchJob, a replica of a Deployment) becomes one job whose
// program is of kind job.Pods: its script is a Set, in JSON. A Set has a Role for each task group of
// the job, in the same order; each task of the group is one pod. The engine of Kubernetes makes the pods
// of Role.Template as it was written; the other engines read what they need of it (PodTemplate) and run
// each pod as a step in a container. What a field means elsewhere, and what is refused where, stands in
// the table of spec/manifest, which runs before a Set is made; nothing here refuses anything but by Check.
//
// Values of secrets are never in a Set: Secret names them, and a launch hands the values over.
//
// The package does no I/O and imports no Kubernetes.
package podspec
