package health

// Device names a device of a pool.
type Device struct {
	Pool, Node string
	Index      int
	Instance   string // number of the MIG instance; empty: it is none
}

// Census counts devices that jobs hold and that somebody measures, each once however many jobs share it. The value
// says whether a device is idle: for all jobs that hold it. It is not safe for concurrent use.
type Census map[Device]bool

// Add counts a device that a job holds and uses or not.
func (c Census) Add(d Device, idle bool) {
	others, known := c[d]
	c[d] = idle && (others || !known)
}

// DeviceUse is how many devices of a pool are measured, and how many of these are idle.
type DeviceUse struct{ Measured, Idle int }

// ByPool returns the sums of each pool. It leaves out pools in which nothing measures a device.
func (c Census) ByPool() map[string]DeviceUse {
	out := map[string]DeviceUse{}
	for d, idle := range c {
		use := out[d.Pool]
		use.Measured++
		if idle {
			use.Idle++
		}
		out[d.Pool] = use
	}
	return out
}
