// Package tools has the commands that need no server: simulate, install-names,
// completion and version (which adds the server's version where one answers).
package tools
