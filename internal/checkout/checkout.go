// Package checkout is for tests only: it finds the folder of the repository that they run in,
// for those that call scripts or build programs. It works in binaries that were built with
// -trimpath too, which do not know where their sources are.
package checkout

import (
	"os"
	"path/filepath"
)

// root is looked up once, before a test changes its working directory.
var root = find()

// Path returns the path of a file or folder in the repository, given from its root. It panics
// where the program did not start inside of a repository, which no test does.
func Path(elem ...string) string {
	if root == "" {
		panic("checkout: there is no go.mod above the working directory")
	}
	return filepath.Join(append([]string{root}, elem...)...)
}

func find() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
	return ""
}
