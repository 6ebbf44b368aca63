// Package smalldisk gives tests a file system of their own that can be full. It is for tests alone.
//
// On a machine where none can be mounted, as by a user without rights, the test is skipped; where CI
// is set all tests are to run, and it fails.
package smalldisk

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// At mounts one at a folder until the test ends, by options of tmpfs: "size=64k".
func At(t testing.TB, dir, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no file system can be mounted: %v", err)
		}
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
