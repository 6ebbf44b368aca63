// Package pmix carries PMIx between the nodes of a step.
//
// The model. Open MPI and other PMIx programs connect to a PMIx server of their node. That
// server is libpmix in a process of its own, cox-pmix, which the node of the step starts when
// the first program connects (package node) and which gets its work as Orders. What the
// servers have to say to each other travels as Messages over the connection between the node
// and srun. In srun an Exchange joins fences and routes requests for the data of a rank.
//
// Guarantees: a message is decoded only within bounds; an Exchange answers a fence once every
// node that takes part has come, in the order of the fences.
//
// The package loads no library and starts no process.
package pmix
