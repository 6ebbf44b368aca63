package image

import (
	"fmt"
	"os"
	"path/filepath"
)

// Path is the PATH of the project's images, and where their programs are the second of it.
const Path = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Server is as whom the server runs in its image, UID and GID.
const Server = 65532

// Agent is the image that brings the crew into pods: cox-pod and cox-slurm of a folder, which
// have to be static, and cox-pmix, which runs by the C library of the job's own image.
func Agent(tag, arch, folder string) (*Image, error) {
	i := &Image{Tag: tag, Arch: arch, Command: []string{"cox-pod"}, Env: []string{"PATH=" + Path}}
	return i, i.addPrograms(folder, "cox-pod", "cox-slurm", "cox-pmix")
}

// Cox is the image of the server, which is the client too: cox of a folder, a user who is
// nobody, and his home. Its state belongs in a volume at /var/lib/coxswain.
func Cox(tag, arch, folder string) (*Image, error) {
	i := &Image{
		Tag: tag, Arch: arch, Command: []string{"cox", "up"}, User: fmt.Sprintf("%d:%d", Server, Server),
		Env: []string{"PATH=" + Path, "HOME=/var/lib/coxswain", "USER=cox"},
		Entries: []Entry{
			{Name: "tmp/", Mode: 0o1777},
			{Name: "etc/passwd", Text: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\ncox:x:%d:%d:Coxswain:/var/lib/coxswain:/sbin/nologin\n", Server, Server), Mode: 0o644},
			{Name: "etc/group", Text: fmt.Appendf(nil, "root:x:0:\ncox:x:%d:\n", Server), Mode: 0o644},
			{Name: "var/lib/coxswain/", Mode: 0o700, User: Server},
			{Name: "run/coxswain/", Mode: 0o700, User: Server},
		},
	}
	return i, i.addPrograms(folder, "cox")
}

func (i *Image) addPrograms(folder string, names ...string) error {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		i.Entries = append(i.Entries, Entry{Name: "usr/local/bin/" + name, Text: text})
	}
	return nil
}
