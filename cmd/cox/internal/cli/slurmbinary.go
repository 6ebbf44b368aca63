package cli

import (
	"os"
	"path/filepath"
)

// SlurmBinaryPath is the small binary that answers to Slurm's names and supervises
// jobs, if it lies beside this one; empty otherwise.
func SlurmBinaryPath() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	lean := filepath.Join(filepath.Dir(self), "cox-slurm")
	if st, err := os.Stat(lean); err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return ""
	}
	return lean
}
