// Package sshare is Slurm's sshare: the tree of accounts with the shares, the usage
// and the fair-share factor of each account and user, as of the server's last tick.
// The figures are those of cox shares; where Fair Tree is on, and it is unless the
// rules say otherwise, the columns are those that Slurm has for it.
package sshare
