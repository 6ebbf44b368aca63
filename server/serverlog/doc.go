// Package serverlog keeps the server's log small, whoever asks for what.
//
// Bounded is a slog.Handler that bounds the length of an entry and the rate of entries of one
// message. File is the file of a server in the background: it is rotated by size, and it leaves
// the last room of its file system to others, the journal above all. Neither of them fails or
// delays what is logged: an entry that does not fit is left out and counted.
package serverlog
