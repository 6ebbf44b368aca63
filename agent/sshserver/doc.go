// Package sshserver is a server of the SSH protocol for one connection, on standard input and
// output. It runs inside a job, as the job's user, beside its tasks: cox ssh-proxy starts it
// through the API, so ssh, scp, sftp and VS Code reach a job without an sshd on its node.
//
// The model. Whoever reaches the streams was let in by the API, which asks for the owner of the job
// or an administrator. So the server asks for no key of the client, and its own key is new in each
// connection: SSH is the language here, not the lock. Nothing listens at a port.
//
// It serves shells and commands with and without a terminal, the sftp subsystem, forwarded ports in
// both directions. It does not forward agents or windows (X11).
package sshserver
