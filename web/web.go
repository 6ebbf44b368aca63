// Package web has the web console as it is built: what `make web` makes of the sources in web/ui is
// embedded here, and server/console serves it.
//
// A clone without Node has no built console, and the package compiles all the same: Built says so.
// The console talks to the HTTP API alone; nothing here knows a job or a route.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files is the built console, with index.html at its root. Without one it has no index.html.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// Built reports whether a folder has a built console.
func Built(files fs.FS) bool {
	_, err := fs.Stat(files, "index.html")
	return err == nil
}
