package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/exectest"
)

var record = flag.Bool("record", false, "record testdata/transcript anew, with a real server")

// transcripts are what the pages of docs/reference/cli show of the commands at work: by command, in
// the order in which they are run. A line that begins with @ is run and not shown.
var transcripts = []struct{ name, lines string }{
	{"ping", "cox ping"},
	{"info", "cox info"},
	{"version", "cox version"},
	{"nodes", "cox nodes"},
	{"partitions", "cox partitions"},
	{"submit", "cat train.sbatch\ncox submit train.sbatch\ncox submit -J eval -d afterok:1 -N 1 --gpus-per-node 2 -- sleep 1\ncox submit -J sweep -a 0-7%2 -H -- true\ncox submit --dry-run -N 1 train.sbatch\ncox submit wrong.sbatch\n@cox submit --parsable train.sbatch"},
	{"queue", "cox queue\ncox queue --me -t PENDING -o wide\ncox queue -o name"},
	{"why", "cox why 2\ncox why 3_4\ncox why 11\ncox why 1"},
	{"show", "cox show 1\ncox show 99"},
	{"node-show", "cox node show v1"},
	{"hold", "cox hold 11"},
	{"release", "cox release 11 3_0"},
	{"update", "cox update 11 --time 1:00:00 --comment 'after the meeting'\ncox update 11 --nodes many"},
	{"logs", "cox logs 1 --tail 3\ncox logs 1.3"},
	{"exec", "cox exec 1 -- sh -c 'echo $SLURM_JOB_ID on $(hostname)'"},
	{"suspend", "cox suspend 1"},
	{"resume", "cox resume 1"},
	{"signal", "cox signal CONT 1"},
	{"watch", "cox watch 1"},
	{"wait", "@cox release 3\ncox wait 1 2"},
	{"cancel", "@cox submit -H -a 1-3 -- true\ncox cancel --me --state PENDING\ncox cancel 11 99"},
	{"requeue", "cox requeue 2\n@cox wait 2"},
	{"node-drain", "cox node drain v2 --reason 'fan makes noise'\ncox nodes"},
	{"node-resume", "cox node resume v2"},
	{"history", "@sleep 2\ncox history --limit 5\ncox history -t COMPLETED --since 1h -o name"},
	{"token-create", "cox token create --comment ci --ttl 24h"},
	{"token-list", "cox token list"},
	{"token-revoke", "cox token revoke $(cox token list -o name)"},
	{"audit", "cox audit --limit 8"},
	{"convert", "cox convert train.sbatch --to native\ncox convert wrong.sbatch --to json"},
	{"advise", "cox advise train.sbatch\ncox advise --nodes 8 --tightly-coupled --bare-metal --expect slurm"},
	{"install-names", "@printf '#!/bin/sh\\n' >bin/cox-slurm && chmod +x bin/cox-slurm\ncox install-names ./names"}, // the last: supervisors would be it
}

// TestRecordTranscripts writes them; it needs a server that can do everything.
func TestRecordTranscripts(t *testing.T) {
	if !*record {
		t.Skip("records only with -record")
	}
	home := t.TempDir()
	for _, dir := range []string{filepath.Dir(home), home} { // as a home directory is
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"train.sbatch": "#!/bin/sh\n#SBATCH --job-name=train --time=10:00\n#SBATCH --nodes=2 --gpus-per-node=4 --ntasks-per-node=2\n#SBATCH --mail-user=anna@example.org\n#SBATCH --output=train-%j.out\nsrun sh -c 'for e in 1 2 3; do echo \"epoch $e, rank $SLURM_PROCID on $(hostname)\"; sleep 2; done'\n",
		"wrong.sbatch": "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --time=28:00:00:00\nsrun hostname\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self) // a copy: a server starts itself anew by its own name
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "cox"), binary, 0o700); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"), "COX_SERVER=unix://"+home+"/state/cox.sock")
	sh := func(line string) string {
		cmd := exectest.Command(t, nil, "sh", "-c", line)
		cmd.Dir, cmd.Env = home, env
		out, _ := cmd.CombinedOutput() // a failure is shown by what it prints
		return string(out)
	}
	if said := sh("cox up -d --state-dir $HOME/state --tcp none --nodes 2 --gpus-per-node 4 && echo started"); !strings.HasSuffix(said, "started\n") {
		t.Fatal(said)
	}
	defer sh("cox down --cancel")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	clean := strings.NewReplacer(home+"/bin", "/usr/local/bin", home+"/state/cox.sock", "/run/coxswain/cox.sock", home, "/home/anna/work", "on "+host, "on login1", "host "+host, "host login1")
	secret := regexp.MustCompile(`(cox_\w{4})\w+`) // it is worth nothing, and looks as if
	for _, tr := range transcripts {
		var b strings.Builder
		for _, line := range strings.Split(tr.lines, "\n") {
			if quiet, ok := strings.CutPrefix(line, "@"); ok {
				sh(quiet)
				continue
			}
			fmt.Fprintf(&b, "$ %s\n%s", line, secret.ReplaceAllString(clean.Replace(sh(line)), "$1…"))
		}
		path := filepath.Join("testdata", "transcript", tr.name+".txt")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
