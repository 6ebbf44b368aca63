// Package serverlog bounds the size of the server's log, so that no request can fill the disk.
//
// Bounded is a slog.Handler that bounds the length of an entry and the rate of entries with one
// message. File is the log file of a server in the background: it rotates by size, and it leaves
// the last free space of its file system to others, the journal above all. Neither of them returns
// an error or waits: an entry that does not fit is left out and counted.
package serverlog
