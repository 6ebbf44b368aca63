// Package tracetest finds the published traces for tests. They are not part of the
// repository: COX_TRACES names their folder, ../shared/traces beside the repository
// otherwise. Where they are absent a test is skipped and says so, unless
// COX_TRACES_REQUIRED=1 says that they have to be there.
package tracetest

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a trace, such as "swf/lublin_256.swf.gz".
func Path(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("COX_TRACES")
	if folder == "" {
		folder = filepath.Join(root(t), "..", "shared", "traces")
	}
	path := filepath.Join(folder, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("COX_TRACES_REQUIRED") == "1" {
			t.Fatalf("the published traces are required (COX_TRACES_REQUIRED=1): %v", err)
		}
		t.Skipf("the published traces are not here (COX_TRACES names their folder): %v", err)
	}
	return path
}

// root is the root of the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}
