package boards

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/daemon"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
	"github.com/coxswain-sched/coxswain/test/testcluster"
)

func TestMain(m *testing.M) { plane.Main(m, nil) }

// program is prometheus or promtool of Debian.
func program(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../scripts/prometheus/tools.sh").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		if os.Geteuid() == 0 {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "usr/bin", name)
}

// TestPromtool has promtool check the rules and run the cases of testdata/rules_test.yaml.
//
// Seen to fail with a threshold of CoxPoolSilent that is never reached, and with "for" left out.
func TestPromtool(t *testing.T) {
	t.Parallel()
	tool := program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "../../deploy/prometheus/rules.yaml"}, {"test", "rules", "testdata/rules_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestPrometheus has Debian's Prometheus scrape a server with a pool that does not answer and a job that
// holds a device and sleeps, until it fires an alert for each. It evaluates each query of the boards.
//
// Seen to fail with a metric that has another name, and with a query that is no PromQL.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	prometheus := program(t, "prometheus")
	var tcp string
	p := plane.New(t, func(c *config.Config) {
		c.Listen.TCP, c.Room.GPUsPerNode, c.Jobs.Pool, c.Jobs.Idle = "127.0.0.1:0", 1, "local", config.Duration(300*time.Millisecond)
	})
	commands := filepath.Join(p.Dir, "commands")
	if err := os.Mkdir(commands, 0o755); err != nil { //nolint:gosec // of a site
		t.Fatal(err)
	}
	for _, name := range []string{"sinfo", "scontrol", "squeue", "sacct", "sbatch", "scancel", "sacctmgr"} {
		p.Program(filepath.Join("commands", name), "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1\n")
	}
	p.Config.Pools = []config.Pool{{Name: "slurm-a", Engine: "slurm", Settings: map[string]any{"local": true, "commands": commands, "shared": p.Dir}}}
	p.Start(func(o *daemon.Options) {
		ready := o.Ready
		o.Ready = func(i daemon.Info) { tcp = i.TCP; ready(i) }
	})
	p.Submit(`echo step-1 > "$COX_CHECKPOINT_DIR/done"; `+p.Gate("gate").Wait, "--gpus=1") // holds its GPU and sleeps

	made, err := p.NewToken(t.Context(), &api.NewToken{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.Write("rules.yaml", regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAllString(string(rules), ""))
	p.Write("token", made.Secret)
	file := p.Write("prometheus.yaml", fmt.Sprintf(`
global: {scrape_interval: 200ms, evaluation_interval: 200ms}
rule_files: [rules.yaml]
scrape_configs:
  - {job_name: coxswain, authorization: {credentials_file: %s/token}, static_configs: [{targets: [%q]}]}
`, p.Dir, tcp))
	s := startPrometheus(t, p, prometheus, file)

	var firing map[string]alert
	p.Await("two alerts fire", func() bool {
		var all struct{ Data struct{ Alerts []alert } }
		s.ask(t, "alerts", nil, &all)
		firing = map[string]alert{}
		for _, a := range all.Data.Alerts {
			if a.State == "firing" {
				firing[a.Labels["alertname"]] = a
			}
		}
		_, away := firing["CoxServerAway"] // as until the first scrape
		return firing["CoxPoolSilent"].State != "" && firing["CoxDevicesIdle"].State != "" && !away
	})
	if a := firing["CoxPoolSilent"]; a.Labels["pool"] != "slurm-a" || a.Labels["state"] != api.PoolSilent || !strings.HasSuffix(a.Annotations["runbook_url"], "#coxpoolsilent") {
		t.Errorf("the alert is %+v", a)
	}
	delete(firing, "CoxEngineErrors") // about the same pool
	if len(firing) > 2 {
		t.Errorf("others fire: %+v", firing)
	}
	all := queries(t)
	for _, where := range slices.Sorted(maps.Keys(all)) {
		s.ask(t, "query", url.Values{"query": {all[where]}}, nil)
	}
	for query, want := range map[string]string{
		`sum(cox_job_start_seconds_count{devices="1"})`: "1", `sum(cox_job_start_seconds_count)`: "1", `cox_devices_idle{pool="local"}`: "1", `cox_devices_measured{pool="local"}`: "1",
		`count(cox_checkpoint_age_seconds{pool="local"} < 600)`: "1", `cox_pool_state{pool="local",state="up"}`: "1",
	} {
		var got struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		s.ask(t, "query", url.Values{"query": {query}}, &got)
		if len(got.Data.Result) != 1 || got.Data.Result[0].Value[1] != want {
			t.Errorf("%s is %+v, want %s", query, got.Data.Result, want)
		}
	}
}

// alert is one of Prometheus' alerts.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// scraper is a Prometheus that runs.
type scraper struct{ address string }

// startPrometheus runs Prometheus on a free port until the test ends.
func startPrometheus(t *testing.T, p *plane.Plane, program, file string) scraper {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := scraper{l.Addr().String()}
	_ = l.Close() // Prometheus takes it at once
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(p.Dir, "tsdb"), "--web.listen-address="+s.address, "--log.level=warn")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := testcluster.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		if err := <-ended; err != nil || t.Failed() {
			t.Logf("Prometheus ended: %v\n%s", err, &said)
		}
	})
	p.Await("Prometheus is ready", func() bool {
		answer, err := http.Get("http://" + s.address + "/-/ready") //nolint:noctx // a test
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return s
}

// ask asks Prometheus' API and reads the answer into out.
func (s scraper) ask(t *testing.T, path string, query url.Values, out any) {
	t.Helper()
	answer, err := http.Get("http://" + s.address + "/api/v1/" + path + "?" + query.Encode()) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %v: %s, %v\n%s", path, query, answer.Status, err, text)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
}
