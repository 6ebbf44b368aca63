package release_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/coxswain-sched/coxswain/internal/checkout"
)

// TestGoInstall: go install …/cmd/cox@VERSION takes the module as a proxy would serve it: it has
// no replace lines, no file that a module may not have, and everything that programs embed.
// With COX_LONG the programs are compiled, and say their version; without, only the go command's
// plan is made.
//
// Seen to fail with: a replace line in go.mod.
func TestGoInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks every module")
	}
	const version = "v1.2.3"
	path := "github.com/coxswain-sched/coxswain"
	dir, proxy := copySources(t), t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": string(read(t, checkout.Path("go.mod"))),
		version + ".info": fmt.Sprintf("{\"Version\": %q, \"Time\": %q}\n", version, testTime.Format(time.RFC3339)),
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := zip.CreateFromDir(file, module.Version{Path: path, Version: version}, dir); err != nil {
		t.Fatal(err)
	}
	have, cache := strings.TrimSpace(mustRun(t, "go", "env", "GOMODCACHE")), t.TempDir()
	linkModules(t, have, cache)
	linkModules(t, filepath.Join(have, "cache", "download"), filepath.Join(cache, "cache", "download"))
	bin := t.TempDir()
	args := []string{"install", "-n"}
	if os.Getenv("COX_LONG") != "" {
		args = args[:1]
	}
	for _, name := range []string{"cox", "cox-slurm", "cox-top"} {
		args = append(args, path+"/cmd/"+name+"@"+version)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath -modcacherw", "GOMODCACHE="+cache, "GOBIN="+bin, "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=", "CGO_ENABLED=0",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(have, "cache", "download")+",off")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	if args[1] == "-n" {
		if !strings.Contains(string(said), filepath.Join(bin, "cox-top")) {
			t.Errorf("the plan does not install cox-top:\n%s", said)
		}
		return
	}
	if got := mustRun(t, filepath.Join(bin, "cox"), "version"); !strings.HasPrefix(got, "cox "+version+" "+runtime.GOOS) {
		t.Errorf("cox version: %s", got)
	}
}

// linkModules makes a cache of modules that has those of another one, but for the project's.
func linkModules(t *testing.T, from, to string) {
	t.Helper()
	for _, dir := range []string{"", "github.com"} {
		entries, err := os.ReadDir(filepath.Join(from, dir))
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, dir), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := e.Name(); e.IsDir() && name != "cache" && name != "github.com" && name != "coxswain-sched" {
				if err := os.Symlink(filepath.Join(from, dir, name), filepath.Join(to, dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
