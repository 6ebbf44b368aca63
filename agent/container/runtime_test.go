package container

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/job"
)

// full is a container of which everything is said.
func full() *Spec {
	return &Spec{
		Name: "cox-7", Mark: "/s/1.1/v1", Image: "nvcr.io#nvidia/pytorch:24.12", Cache: "/cache/1000", Rc: "/s/rc",
		Init:   []string{"/root/bin/cox", "container-init", "/s/job"},
		Mounts: []job.Mount{{Source: "/data", Target: "/mnt", Flags: []string{"ro", "x-create=dir"}}, {Source: "tmpfs", Target: "/scratch"}},
		UID:    1000, GID: 100, WorkDir: "/w", ReadOnly: true, Devices: []string{"nvidia.com/gpu=0"}, NVIDIA: true, NoCgroups: true,
	}
}

func TestCommandLines(t *testing.T) {
	const engine = "--name cox-7 --label coxswain=/s/1.1/v1 --pull=never --log-driver=none --network=host --uts=host"
	const rest = "--read-only --workdir=/w --volume=/data:/mnt:ro --tmpfs=/scratch --device=nvidia.com/gpu=0 --entrypoint=/root/bin/cox nvcr.io/nvidia/pytorch:24.12 container-init /s/job"
	for name, c := range map[string]struct {
		kind   Kind
		change func(*Spec)
		want   string
	}{
		"podman":                {Podman, nil, "P -x run --rm " + engine + " --security-opt=label=disable --security-opt=seccomp=unconfined --cgroups=disabled --ipc=host --userns=keep-id --user=1000:100 --group-add=keep-groups " + rest},
		"podman as root":        {Podman, func(s *Spec) { s.Root = true }, "P -x run --rm " + engine + " --security-opt=label=disable --security-opt=seccomp=unconfined --cgroups=disabled --ipc=host --user=0:0 " + rest},
		"podman with runc":      {Podman, func(s *Spec) { s.NoCgroups = false }, "P -x run --rm " + engine + " --security-opt=label=disable --security-opt=seccomp=unconfined --cgroups=no-conmon --ipc=host --userns=keep-id --user=1000:100 " + rest},
		"podman without queues": {Podman, func(s *Spec) { s.NoQueues, s.RemapRoot = true, true }, "P -x run --rm " + engine + " --security-opt=label=disable --security-opt=seccomp=unconfined --cgroups=disabled --volume=/dev/shm:/dev/shm --user=0:0 " + rest},
		"podman with entry point": {Podman, func(s *Spec) {
			*s = Spec{Name: "n", Mark: "m", Image: "i:1", Init: s.Init, Root: true, Entrypoint: true}
		}, "P -x run --rm --name n --label coxswain=m --pull=never --log-driver=none --network=host --uts=host --security-opt=label=disable --security-opt=seccomp=unconfined --cgroups=no-conmon --ipc=host --user=0:0 i:1 /root/bin/cox container-init /s/job"},
		"podman, a directory": {Podman, func(s *Spec) { *s = Spec{Name: "n", Mark: "m", Image: "/rootfs", Init: s.Init, Root: true} }, "P -x run --rm --name n --label coxswain=m --pull=never --log-driver=none --network=host --uts=host --security-opt=label=disable --security-opt=seccomp=unconfined --cgroups=no-conmon --ipc=host --user=0:0 --entrypoint=/root/bin/cox --rootfs /rootfs:O container-init /s/job"},
		"docker":              {Docker, nil, "P -x run --rm " + engine + " --ipc=host --security-opt=label=disable --security-opt=seccomp=unconfined --user=1000:100 " + rest},
		"apptainer":           {Apptainer, nil, "P -x exec --cleanenv --no-home --no-mount=cwd --nv --pwd=/w --bind=/data:/mnt:ro --scratch=/scratch /cache/1000/nvcr.io+nvidia+pytorch+24.12.sif /root/bin/cox container-init /s/job"},
		"apptainer, a file":   {Apptainer, func(s *Spec) { *s = Spec{Image: "/i.sif", Init: s.Init, Entrypoint: true, RemapRoot: true, AMD: true} }, "P -x run --cleanenv --no-home --no-mount=cwd --fakeroot --writable-tmpfs --rocm /i.sif /root/bin/cox container-init /s/job"},
		"enroot":              {Enroot, func(s *Spec) { s.WorkDir = "" }, "P -x start --rc /s/rc --mount /data /mnt x-create=auto,rbind,ro --mount tmpfs /scratch x-create=dir cox-7 /root/bin/cox container-init /s/job"},
	} {
		s := full()
		if c.change != nil {
			c.change(s)
		}
		if got := strings.Join(New(c.kind, "P", []string{"-x"}).Start(s).Words, " "); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestImageCommands(t *testing.T) {
	for _, c := range []struct {
		kind        Kind
		image, want string
	}{
		{Podman, "docker://a/b:1", " | P image inspect --format={{.Digest}}{{range .RepoDigests}} {{.}}{{end}} a/b:1 | P pull --quiet a/b:1"},
		{Podman, "/rootfs", "/rootfs |  | "},
		{Docker, "me@reg.io#a/b:1", " | P image inspect --format={{range .RepoDigests}} {{.}}{{end}} reg.io/a/b:1 | P pull --quiet reg.io/a/b:1"},
		{Apptainer, "a/b:1", "/c/a+b+1.sif |  | P pull --force /c/a+b+1.sif docker://a/b:1"},
		{Apptainer, "./b.sif", "./b.sif |  | "},
		{Enroot, "reg.io#a/b:1", "/c/reg.io+a+b+1.sqsh |  | P import --output /c/reg.io+a+b+1.sqsh docker://reg.io#a/b:1"},
	} {
		i := New(c.kind, "P", nil).Image(&Spec{Image: c.image, Cache: "/c"})
		if got := i.File + " | " + strings.Join(i.Has.Words, " ") + " | " + strings.Join(i.Pull.Words, " "); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.image, got, c.want)
		}
	}
}

// TestPullsWithLogin: no runtime gets a password on its command line.
func TestPullsWithLogin(t *testing.T) {
	for kind, want := range map[Kind]string{
		Podman:    "P pull --quiet --authfile=/h/config.json reg.io/a/b:1",
		Docker:    "P --config=/h pull --quiet reg.io/a/b:1",
		Apptainer: "P pull --force --authfile=/h/config.json /c/reg.io+a+b+1.sif docker://reg.io/a/b:1",
		Enroot:    "ENROOT_CONFIG_PATH=/h P import --output /c/reg.io+a+b+1.sqsh docker://reg.io#a/b:1",
	} {
		pull := New(kind, "P", nil).Image(&Spec{Image: "reg.io#a/b:1", Cache: "/c", Login: "/h"}).Pull
		if got := strings.Join(append(pull.Env, pull.Words...), " "); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

func TestReadDigest(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	for _, c := range []struct{ image, printed, want string }{
		{"reg.io:5000/x", a + " reg.io/x@" + a + " reg.io:5000/x@" + b, b},
		{"reg.io/x:1", a + " reg.io/x@" + a + " reg.io/x@" + b, b},
		{"docker://reg.io#team/x:1", "reg.io/team/x@" + b + "\n", b},
		{"reg.io/x@" + b, a + " reg.io/x@" + b, b},
		{"local:1", a + "\n", a},
		{"local:1", "\n", ""},
		{"local:1", "Error: no such image", ""},
	} {
		if got := ReadDigest(c.image, c.printed); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.image, c.printed, got, c.want)
		}
	}
}

func TestEnviron(t *testing.T) {
	image := []string{"PATH=/opt/bin:/bin", "FLAVOUR=image", "SHARED=image", "container=podman", "HOSTNAME=x"}
	for name, c := range map[string]struct {
		job, image, keep []string
		want             string
	}{
		"the image's outranks":   {[]string{"PATH=/usr/bin", "SHARED=job", "A=b"}, image, nil, "A=b PATH=/cox:/opt/bin:/bin FLAVOUR=image SHARED=image"},
		"but for those kept":     {[]string{"SHARED=job"}, image, []string{"SHARED"}, "SHARED=job PATH=/cox:/opt/bin:/bin FLAVOUR=image"},
		"the locale is left out": {[]string{"LANG=de", "LC_ALL=de", "LC_TIME=de"}, nil, nil, "LC_TIME=de"},
		"unless it is kept":      {[]string{"LANG=de", "LC_ALL=de"}, nil, []string{"LANG"}, "LANG=de"},
		"ranks of PyTorch":       {[]string{"SLURM_PROCID=3", "SLURM_LOCALID=1", "RANK=9"}, []string{"PYTORCH_VERSION=2"}, nil, "SLURM_PROCID=3 SLURM_LOCALID=1 PYTORCH_VERSION=2 RANK=3 LOCAL_RANK=1"},
	} {
		if got := strings.Join(Environ(c.job, c.image, c.keep, "/cox"), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestDevices(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cdi/nvidia.yaml", "cdiVersion: 0.5.0\ndevices:\n- containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0\n  name: \"0\"\n- name: GPU-1\nkind: nvidia.com/gpu\n")
	write("cdi/amd.json", `{"kind": "amd.com/gpu", "devices": [{"name": "0"}]}`)
	for _, f := range []string{"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "kfd", "dri/renderD129"} {
		write("dev/"+f, "")
	}
	gpu := func(v deviceenv.Vendor, index int, uuid string) GPU {
		return GPU{Shown: deviceenv.Device{Vendor: v, Index: index}, UUID: uuid}
	}
	dev := filepath.Join(dir, "dev")
	for name, c := range map[string]struct {
		gpus []GPU
		cdi  bool
		want string
	}{
		"declared ones are none": {[]GPU{gpu(deviceenv.Declared, 0, "")}, true, ""},
		"by CDI":                 {[]GPU{gpu(deviceenv.NVIDIA, 0, ""), gpu(deviceenv.NVIDIA, 1, "GPU-1"), gpu(deviceenv.AMD, 0, "")}, true, "nvidia.com/gpu=0 nvidia.com/gpu=GPU-1 amd.com/gpu=0"},
		"by files":               {[]GPU{gpu(deviceenv.NVIDIA, 0, ""), gpu(deviceenv.NVIDIA, 1, "")}, false, "D/nvidia0 D/nvidiactl D/nvidia-uvm D/nvidia1"},
		"by files, of AMD":       {[]GPU{gpu(deviceenv.AMD, 1, "")}, false, "D/kfd D/dri/renderD129"},
	} {
		var dirs []string
		if c.cdi {
			dirs = []string{filepath.Join(dir, "cdi"), filepath.Join(dir, "nowhere")}
		}
		if got := strings.Join(Devices(c.gpus, dirs, dev), " "); got != strings.ReplaceAll(c.want, "D/", dev+"/") {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestReadProbe(t *testing.T) {
	s := &Settings{Runtime: Podman, Program: "/p", Args: []string{"--a"}}
	if got := s.ProbeCommand().Words; !slices.Equal(got, []string{"/p", "--a", "info", "--format={{.Host.OCIRuntime.Name}}"}) {
		t.Errorf("%q", got)
	}
	if !s.ReadProbe("crun\n") || s.ReadProbe("runc\n") {
		t.Error("only crun leaves containers in the control group of its caller")
	}
}

func TestNumberDevices(t *testing.T) {
	gpu := func(v deviceenv.Vendor, index int, instance string) GPU {
		return GPU{Shown: deviceenv.Device{Vendor: v, Index: index, Instance: instance}}
	}
	for name, c := range map[string]struct {
		gpus      []GPU
		env, want string
	}{
		"one of four":         {[]GPU{gpu(deviceenv.NVIDIA, 2, "")}, "CUDA_VISIBLE_DEVICES=2 GPU_DEVICE_ORDINAL=2 A=2", "CUDA_VISIBLE_DEVICES=0 GPU_DEVICE_ORDINAL=0 A=2"},
		"some of a task":      {[]GPU{gpu(deviceenv.NVIDIA, 3, ""), gpu(deviceenv.NVIDIA, 1, ""), gpu(deviceenv.NVIDIA, 2, "")}, "CUDA_VISIBLE_DEVICES=2,3", "CUDA_VISIBLE_DEVICES=1,2"},
		"AMD":                 {[]GPU{gpu(deviceenv.AMD, 5, "")}, "ROCR_VISIBLE_DEVICES=5 GPU_DEVICE_ORDINAL=0 HIP_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES=-1", "ROCR_VISIBLE_DEVICES=0 GPU_DEVICE_ORDINAL=0 HIP_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES=-1"},
		"a MIG instance":      {[]GPU{gpu(deviceenv.NVIDIA, 2, "MIG-1")}, "CUDA_VISIBLE_DEVICES=MIG-1", "CUDA_VISIBLE_DEVICES=MIG-1"},
		"declared, none here": {[]GPU{gpu(deviceenv.Declared, 2, "")}, "CUDA_VISIBLE_DEVICES=2 ROCR_VISIBLE_DEVICES=2", "CUDA_VISIBLE_DEVICES=2 ROCR_VISIBLE_DEVICES=2"},
	} {
		if got := strings.Join(NumberDevices(strings.Fields(c.env), c.gpus), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestVariablesOfContainersAlone: they outrank those of the image and of the node, and what a pod says of
// its rank counts more than what srun knows.
func TestVariablesOfContainersAlone(t *testing.T) {
	job := []string{"HOSTNAME=node", "PATH=/bin", "RANK=2", "SLURM_PROCID=0", "SLURM_LOCALID=0", Only + "HOSTNAME=pod-0", Only + "PATH=/opt/bin"}
	got := Environ(job, []string{"PATH=/usr/bin", "PYTORCH_VERSION=2"}, []string{"RANK"}, "/cox")
	for _, want := range []string{"HOSTNAME=pod-0", "PATH=/opt/bin", "RANK=2", "LOCAL_RANK=0", "PYTORCH_VERSION=2"} {
		if n := slices.Index(got, want); n < 0 {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if len(got) != 7 {
		t.Errorf("%q", got)
	}
}
