// Package nodes has the commands for nodes and what belongs to them: nodes, node
// (show, drain, resume, move), partitions, licenses and defrag.
package nodes
