// Package wire is what srun and the nodes of a job say to each other over unix sockets:
// frames, their bodies, and what a node accepts.
//
// The model. A Link carries Frames in both directions. The first is MsgHello; the
// second says what the connection is for: a step to be allocated (Request), tasks to be
// held (Preparation), a command beside the tasks (Execution), or a wait for a step's
// end. Bodies are JSON for what is said once, raw bytes for input and output.
//
// Guarantees: a node checks lengths before it has memory for a body and counts what it
// keeps against a Budget; Check refuses requests and preparations with indices or
// numbers that do not fit the job. The format stays readable for a supervisor that an
// earlier version of cox started, unless Protocol changes.
//
// The package decides nothing: who may ask is the node's to check.
package wire
