// Package devicelock gives each physical device of a machine one owner.
//
// The model. A device has lock files in folders that every user of the machine can reach. They are
// named after the device's UUID and PCI address, so it does not matter who looks, or how the device
// is numbered. An owner is the identity of a state directory. Every process of that owner that
// hands out the device or runs a job on it holds a shared flock(2) on its files, and the file says
// who the owner is. Another owner needs an exclusive lock first, and so waits until the last of
// those processes has ended: a server may die while its supervisors keep the devices of its jobs.
// Nothing has to be tidied up after SIGKILL.
//
// MIG instances are locked by their own UUID. They also hold the files of the GPU that they are part
// of, in common with other instances, so nobody takes that GPU as a whole meanwhile.
//
// The files are a word among cooperating programs, not a protection: whoever may use a device can
// use it without a lock, and any user of the machine can create or lock such a file. Links, files
// that are not regular and files that cannot be opened count as held, and are never written to.
//
// Not seen: declared devices (they are numbers, never locked), devices without a UUID and a PCI
// address, programs that do not take these locks, other kernels, and containers that share none of
// the folders.
package devicelock
