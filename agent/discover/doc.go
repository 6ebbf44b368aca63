// Package discover looks at this machine and says what a scheduler can place
// work on: CPUs, memory, NUMA nodes, GPUs, the links between GPUs, and who
// uses a GPU already.
//
// # Model
//
// [Look] reads sysfs, procfs and the cgroup files through one [io/fs.FS], and
// asks for GPUs through programs run with a deadline: the helper cox-gpuprobe
// (NVML), then nvidia-smi; rocm-smi, then amd-smi, then the amdgpu driver's
// own files. A program is only started where the PCI bus or the device files
// say that such a GPU may be there, so a laptop without one pays nothing.
//
// # Guarantees
//
// What was tried and could not be used becomes a [Note], one clear line each;
// a missing tool, a broken driver or odd output is never an error and never
// ends the process, because every vendor library runs in another process.
// Only CPUs, memory and GPUs that this process may use are reported: the
// affinity mask, the cgroup limits and inherited *_VISIBLE_DEVICES count.
// The result is a snapshot in a fixed order; the same inputs give the same
// result.
//
// # Not done here
//
// Nothing is reserved, changed or watched. Devices that a user merely declares
// are made by [DeclaredGPUs] and never mixed with found ones. Utilisation,
// temperature and health counters are not read. GPUs of other vendors are not
// looked for.
package discover
