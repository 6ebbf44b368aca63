// Package manifestpod makes the pods of a Kubernetes manifest on Kubernetes, and says how they ended.
//
// The model. A job whose program is of kind job.Pods has a podspec.Set as its script. Work is that set with
// its pod templates read strictly, as the cluster's own types. Work is a render.Template: each pod of an attempt
// is its role's template as it was written, with what an attempt needs (render.Attempt.Frame) and what the set
// says: names, an operator's variables and files, references to the objects of the same file. Nothing of
// Coxswain runs in these pods. So the barrier is the binding of all of them, and Work.Judge reads their end
// from the states of containers, as driver/kube/podstatus shows them.
//
// Rights. A field that reaches beyond the job is refused unless the pool's setting allow has it
// (settings.Allowances). That is read from the template itself, at submission and again at the launch; what a
// field means for others is decided in rights.go and nowhere else. A field that no rule knows is one that
// reaches no further than its own pod.
//
// The package does no I/O. Work is not written to after Parse and is safe for concurrent use.
package manifestpod
