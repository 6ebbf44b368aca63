// Package cli is the application that all commands of cox share: the standard
// streams and the flags of every command (App), the root command with its help
// groups, the client of the server, output formats (-o), errors and exit codes,
// progress on a terminal, a table that is watched, and shell completion.
//
// App.Execute runs one command. It is the only place where an error becomes text and
// an exit code (docs/reference/exit-codes.md); a command returns its error, or sets App.Code
// where the exit code is a job's own.
//
// The package contains no command, and it imports no package that does. All of it
// builds on every system; NeedsLinux stands in for commands that need Linux.
package cli
