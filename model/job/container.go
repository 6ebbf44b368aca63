package job

// Container is how the container of Spec.Image runs, where its user said so: in the terms of the
// pyxis plugin of Slurm. The zero value leaves everything to the pool.
type Container struct {
	Mounts  []Mount  `json:"mounts,omitempty"`
	WorkDir string   `json:"work_dir,omitempty"` // inside; empty: the image's, or the job's where that is mounted
	Env     []string `json:"env,omitempty"`      // names of variables of which the job's value outranks the image's
	Name    string   `json:"name,omitempty"`     // under which later steps of the job find it again; empty: it goes with its step

	Home       *bool `json:"home,omitempty"`       // mounts the home directory
	RemapRoot  *bool `json:"remap_root,omitempty"` // its processes are root inside
	Entrypoint *bool `json:"entrypoint,omitempty"` // runs the image's entry point first
	Writable   *bool `json:"writable,omitempty"`   // its files can be changed
}

// Mount is a directory or file of the node that a container sees.
type Mount struct {
	Source string   `json:"source"`          // absolute or relative to the working directory; "tmpfs": an empty file system in memory
	Target string   `json:"target"`          // absolute
	Flags  []string `json:"flags,omitempty"` // ro, rw, rprivate …
}

// IsZero reports whether nothing is said.
func (c *Container) IsZero() bool {
	return c == nil || len(c.Mounts) == 0 && c.WorkDir == "" && len(c.Env) == 0 && c.Name == "" &&
		c.Home == nil && c.RemapRoot == nil && c.Entrypoint == nil && c.Writable == nil
}
