// Package route says where work belongs and why: an engine (Slurm, Kubernetes,
// k3s), a runtime on it (Ray, MPI, torchrun), what has to be added (a gang
// scheduler), and which pools that are there can run it.
//
//	Read(source) ──► Facts ──► Advise ──► Advice ──► Here(pools)
//	                   ▲ Override (flags)
//
// Facts are few, and each says where it comes from: a line of the file, a flag, the
// inventory, or nothing (then it is taken as no, and shown as assumed). The rules
// are a table (rules.go): conditions on facts and what follows. Of those that choose
// the engine the first that applies decides; of the others all that apply speak.
// Every answer names the rules and the facts that led to it.
//
// Reading is a matter of lines and patterns (patterns.go): it skips comments, text
// that is only printed, and here documents that are no program. It can be wrong;
// that is why it shows the line, and why flags override it.
//
// Rank orders pools for a job that names none (preferences, in rank.go); the caller tries
// them in that order, and takes the first that can run it.
//
// The package is pure: it takes bytes and returns values. It does not ask a cluster,
// does not place anything, and nothing is refused because of an advice; Choose, which
// says what a pool must be able to do, and Rank are obeyed.
package route
