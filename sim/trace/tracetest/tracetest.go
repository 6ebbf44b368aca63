// Package tracetest finds the published traces for tests. They are not part of the
// repository: COX_TRACES names their folder, ../shared/traces beside the repository
// otherwise. Where they are absent a test is skipped and says so, unless
// COX_TRACES_REQUIRED=1 says that they have to be there.
package tracetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/checkout"
)

// Path returns the path of a trace, such as "swf/lublin_256.swf.gz".
func Path(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("COX_TRACES")
	if folder == "" {
		folder = checkout.Path("..", "shared", "traces")
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
