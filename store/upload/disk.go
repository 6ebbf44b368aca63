package upload

import (
	"math"

	"golang.org/x/sys/unix"
)

// FreeRoom is how many bytes may be written to the file system of a directory so that what has to stay
// free there does.
func FreeRoom(dir string) (int64, error) {
	free, all, err := diskSpace(dir)
	if err != nil {
		return 0, err
	}
	return free - sparedBytes(all), nil
}

// diskSpace is how many bytes of a directory's file system are free, for others than root, and how
// many it has.
func diskSpace(dir string) (free, all int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	if st.Blocks == 0 {
		return math.MaxInt64 / 2, 0, nil // it does not count
	}
	block := int64(st.Bsize)                                       // // another type on other systems
	return int64(st.Bavail) * block, int64(st.Blocks) * block, nil //nolint:gosec // no file system has so many
}
