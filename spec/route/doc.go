// Package route says where work belongs and why: an engine (Slurm, Kubernetes,
// k3s), a runtime on it (Ray, MPI, torchrun), what has to be added (a gang
// scheduler), and which pools that are there can run it.
//
//	ScriptFacts, DocumentFacts ──► Facts ──► Advise ──► Advice ──► Judge(pools)
//	                                 ▲ Override (flags)
//
// Facts are few, and each says where it comes from: a line of the file, a flag, the
// inventory, or nothing (then it is taken as no, and shown as assumed). The rules
// are a table (rules.go): conditions on facts and what follows. Of those that choose
// the engine the first that applies decides; of the others all that apply speak.
// Every answer names the rules and the facts that led to it.
//
// The facts come from the parsed job and from the commands of its script (shell.go), which a
// table recognises (patterns.go): a name counts where a command begins. They can be wrong; that
// is why each shows its line, and why flags override it.
//
// What a script takes from the machines (needs.go: modules, home directories, containers that it
// starts itself) comes before its shape: it runs there as it is. The advice says where its shape
// belongs, and what that takes.
//
// Rank orders pools for a job that names none (preferences, in rank.go); the caller tries
// them in that order, and takes the first that can run it.
//
// The package is pure: it takes values and returns values. It parses no job (control/intake
// does), does not ask a cluster, does not place anything, and nothing is refused because of an
// advice; only Rank is obeyed.
package route
