package pmix

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// VersionWord is the argument with which the helper prints the version of its library.
const VersionWord = "version"

// RemoveWord is the argument with which the helper removes the directory that another one
// left, as the user whose it is.
const RemoveWord = "remove"

// HelperVariable names another helper than the one beside the binary.
const HelperVariable = "COX_PMIX_HELPER"

// FindHelper finds the helper. Self is the binary that it lies beside.
func FindHelper(self string) (string, error) {
	if name := os.Getenv(HelperVariable); name != "" {
		return name, nil
	}
	beside := filepath.Join(filepath.Dir(self), HelperName)
	if _, err := os.Stat(beside); err == nil {
		return beside, nil
	}
	if name, err := exec.LookPath(HelperName); err == nil {
		return name, nil
	}
	return "", fmt.Errorf("the program speaks PMIx, as Open MPI does, and %s is not installed beside cox; install it, or start the program with mpirun inside the job", HelperName)
}

// CheckLoader reports why a helper cannot be started for want of the C library that loads
// libpmix: images without glibc, such as Alpine's, do not have it.
func CheckLoader(helper string) error {
	f, err := elf.Open(helper)
	if err != nil {
		return fmt.Errorf("the PMIx server %s: %w", helper, err)
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		return nil
	}
	text, err := section.Data()
	if err != nil {
		return fmt.Errorf("the PMIx server %s: %w", helper, err)
	}
	loader := string(bytes.TrimRight(text, "\x00"))
	if _, err := os.Stat(loader); err != nil {
		return fmt.Errorf("the program speaks PMIx, as Open MPI does, and the job's image has no glibc (%s), which libpmix needs; take an image with glibc and libpmix (Debian: package libpmix2), or srun --mpi=none", loader)
	}
	return nil
}

// LibraryVersion is the version of this machine's libpmix, such as "4.2.2", or "" if PMIx
// cannot be served here. Self is as in FindHelper.
func LibraryVersion(self string) string {
	helper, err := FindHelper(self)
	if err != nil {
		return ""
	}
	out, err := exec.Command(helper, VersionWord).Output()
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(out))
}
