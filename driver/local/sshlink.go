package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// sshName is the name under which this process's own binary is a server of SSH (sshserver.Name).
const sshName = "cox-ssh"

// linkSSHServer links that name to this process's binary: the small one that supervises jobs lacks
// the library. It is found by its path, so it is of use as long as the binary stays where it is.
func linkSSHServer(bin string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the binary of %s: %w", sshName, err)
	}
	name := filepath.Join(bin, sshName)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(self, name)
}
