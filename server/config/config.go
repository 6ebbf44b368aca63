// Package config is the server's one configuration file: its Go types, their
// defaults and documentation, and a strict reader.
//
// A field that does not exist is an error with line, column and the nearest field
// that does. What is not given keeps the default of Default. docs/reference/configuration.md
// is made from the types, so a field cannot be there without a word about it.
package config

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-sched/coxswain/server/notify"
)

// Config is the file as a whole.
type Config struct {
	Name       string      `yaml:"name" doc:"of the cluster, as Slurm's commands show and take it (-M)"`
	State      State       `yaml:"state" doc:"what is kept, where and how long"`
	Listen     Listen      `yaml:"listen" doc:"where the server answers"`
	Gateway    Gateway     `yaml:"gateway" doc:"the proxy in front of services (docs/reference/gateway.md)"`
	Auth       Auth        `yaml:"auth" doc:"who may do what"`
	Room       Room        `yaml:"room" doc:"what the embedded engine offers of this machine"`
	Pools      []Pool      `yaml:"pools" doc:"pools that the server has beside its own; others are added by cox pool add"`
	Partitions []Partition `yaml:"partitions" doc:"views of the nodes; none: one that is called like the pool and has all nodes"`
	Accounts   []Account   `yaml:"accounts" doc:"known accounts; none: any name is taken"`
	Jobs       Jobs        `yaml:"jobs" doc:"rules for all jobs"`
	Containers Containers  `yaml:"containers" doc:"containers of the embedded engine (docs/how-to/containers.md)"`
	Hooks      Hooks       `yaml:"hooks" doc:"programs of the site that run around a job"`
	Health     Health      `yaml:"health" doc:"checks of nodes, and what is done if they fail (docs/explanation/health.md)"`
	Notify     Notify      `yaml:"notify" doc:"mail and webhooks about jobs (docs/how-to/webhooks.md)"`
	Log        Log         `yaml:"log" doc:"what the server says of itself, on standard error"`
}

// State says what is kept.
type State struct {
	Dir     string   `yaml:"dir" doc:"state directory: journal, scripts, logs of ranks. Default: /var/lib/coxswain for root, else ~/.local/state/coxswain"`
	Mine    bool     `yaml:"mine" doc:"nobody but this server reaches the state directory, whatever its mode says: a volume of a pod's own. Else one that others may write to is refused"`
	Journal Duration `yaml:"journal" doc:"how long journal records are kept after they are part of the projection, those of the audit with them"`
	History Duration `yaml:"history" doc:"how long ended jobs stay in the history"`
	Series  Bytes    `yaml:"series" doc:"room for the series of jobs (docs/reference/efficiency.md); the oldest are removed first"`
	Ranks   Duration `yaml:"ranks" doc:"how long the copies of ranks' own output are kept (cox logs J.RANK; 16 MiB each at most); the job's output files are the user's"`
	Memory  Duration `yaml:"memory" doc:"how long ended jobs stay in lists of live jobs (Slurm's MinJobAge)"`
}

// Listen says where the server answers.
type Listen struct {
	Socket string `yaml:"socket" doc:"unix socket; users are known by the credentials of their process. Default: /run/coxswain/cox.sock for root, else cox.sock in $XDG_RUNTIME_DIR/coxswain or the state directory"`
	TCP    string `yaml:"tcp" doc:"loopback address for clients with a token; auto: port 7461 or, if that is taken, another; none: no TCP"`
}

// Gateway says how the server's own gateway runs.
type Gateway struct {
	Listen    string `yaml:"listen" doc:"host:port for clients; auto: 127.0.0.1:8080 or, if that is taken, the next free port; none: the server keeps no gateway"`
	Cert      string `yaml:"tls_cert" doc:"PEM file of a certificate, read again when it changes; empty: no TLS"`
	Key       string `yaml:"tls_key" doc:"PEM file of its key"`
	AccessLog string `yaml:"access_log" doc:"file that gets a line of JSON for each request; empty: none"`
	Metrics   string `yaml:"metrics" doc:"loopback host:port for Prometheus; empty: none"`
}

// Auth says who may do what.
type Auth struct {
	Admins     []string `yaml:"admins" doc:"users who may do everything, beside root and the server's own user"`
	AdminGroup string   `yaml:"admin_group" doc:"members of this group of the machine are administrators too"`
	Private    bool     `yaml:"private" doc:"users see only their own jobs (Slurm's PrivateData=jobs)"`
}

// Room says what the embedded engine offers.
type Room struct {
	Nodes          int      `yaml:"nodes" doc:"virtual nodes of this machine; 0: this machine itself as one node"`
	Names          []string `yaml:"names" doc:"of the virtual nodes, by position; default v1, v2, …"`
	CPUs           int      `yaml:"cpus" doc:"of each node; 0: what this machine has"`
	Memory         Bytes    `yaml:"memory" doc:"of each node; 0: what this machine has"`
	GPUsPerNode    int      `yaml:"gpus_per_node" doc:"of each virtual node; -1: the real ones, dealt out; more than there are: declared, numbers without hardware"`
	GPUType        string   `yaml:"gpu_type" doc:"of declared GPUs"`
	Features       []string `yaml:"features" doc:"that every node has, for --constraint"`
	NodesPerLeaf   int      `yaml:"nodes_per_leaf" doc:"so many virtual nodes make a leaf of the topology (leaf1, leaf2, …); 0: there is no topology"`
	LeavesPerBlock int      `yaml:"leaves_per_block" doc:"so many leaves make a block (block1, …); 0: leaves are all there is"`
	Levels         []string `yaml:"levels" doc:"names of the levels of the topology, outermost first, for within; default block and leaf, as far as there are any"`
	GPUMetrics     string   `yaml:"gpu_metrics" doc:"page of a DCGM exporter, or address of a Prometheus (docs/reference/efficiency.md); empty: NVML alone"`
	ByAddress      bool     `yaml:"by_address" doc:"virtual nodes without host names: their names are their addresses"`
	Network        string   `yaml:"network" doc:"own: each virtual node has a network namespace and an address; shared: all have the machine's network. Default: own for root with more than one node, where the machine allows it"`
	NoLimits       bool     `yaml:"no_limits" doc:"use no control groups, even where they can be used"`
}

// Pool is a pool beside the server's own. What is changed here holds from the next start on.
type Pool struct {
	Name     string         `yaml:"name" doc:"as in --pool"`
	Engine   string         `yaml:"engine" doc:"kind of engine: slurm or kube"`
	Settings map[string]any `yaml:"settings" doc:"what that kind needs to know, as cox pool add --settings has it (docs/explanation/slurm.md, docs/explanation/kubernetes.md); no secrets, only where they are"`
}

// Partition is a view of the pool's nodes.
type Partition struct {
	Name        string   `yaml:"name" doc:"as in --partition"`
	Default     bool     `yaml:"default" doc:"for jobs that name none; without any, the first is"`
	Nodes       string   `yaml:"nodes" doc:"host list; empty: all"`
	TimeLimit   Duration `yaml:"time_limit" doc:"longest time limit of a job; 0: none"`
	DefaultTime Duration `yaml:"default_time" doc:"time limit of jobs that give none; 0: the longest"`
}

// Account is a known account.
type Account struct {
	Name  string   `yaml:"name" doc:"as in --account"`
	Users []string `yaml:"users" doc:"who may use it; the first account of a user is his default"`
}

// Jobs are rules for all jobs.
type Jobs struct {
	Grace            Duration `yaml:"grace" doc:"between the signal to end and the kill (Slurm's KillWait)"`
	Unkillable       Duration `yaml:"unkillable" doc:"after SIGKILL, until a process that still lives counts as stuck: its job is uncertain then and its node is drained (Slurm's UnkillableStepTimeout)"`
	Idle             Duration `yaml:"idle" doc:"after which a running job that holds devices on a node and uses no CPU time there is shown as idle; 0: never"`
	AllocationIdle   Duration `yaml:"allocation_idle" doc:"after which an allocation (salloc) ends in which no step and no command of cox exec or cox shell ran; 0: never"`
	MaxArray         int      `yaml:"max_array" doc:"tasks of one array"`
	Pool             string   `yaml:"pool" doc:"of jobs that name none; a,b: the one of these that starts them first; empty: any (docs/explanation/pools.md); local is the server's own"`
	Processes        int      `yaml:"processes" doc:"processes and threads of one job on each node, where control groups can bound them; 0: half of what the machine can have; -1: no bound"`
	KillOnInvalidDep bool     `yaml:"kill_on_invalid_dep" doc:"end jobs whose dependency can never be met, unless they say otherwise"`
	Upload           Bytes    `yaml:"upload" doc:"size of one archive of a directory that comes with a job (cox submit --upload); where it is left out, not more than uploads"`
	Uploads          Bytes    `yaml:"uploads" doc:"room for all of these of one user, each of which counts as 64 KiB at least; what no job needs any more makes way. They lie in state.dir/uploads, and leave 1 GiB of its file system free, or 5 % if that is more, but at most 8 GiB"`
	UploadDir        string   `yaml:"upload_dir" doc:"where the directories that come with jobs are working directories of the jobs of this machine, one for each job, in a directory cox-… of this server's own; left out: state.dir/engine/work. Only root may be able to write to it and to the directories above it, or they have the sticky bit; users must be able to pass through the directories above it"`
	UploadRoom       Bytes    `yaml:"upload_room" doc:"the most that one of these has when it is unpacked"`
	UploadKeep       Duration `yaml:"upload_keep" doc:"after the end of its job, until such a directory is removed; it goes with the job's record at the latest, and earlier where less than 1 GiB is left for others"`
	Environment      Environ  `yaml:"environment" doc:"which variables of a submission are kept and given to the job"`
}

// Environ says which variables of a submission are kept.
type Environ struct {
	Filter bool     `yaml:"filter" doc:"leave out variables; what was left out is noted with the job"`
	Drop   []string `yaml:"drop" doc:"patterns of names to leave out (* for any characters); default: names that mostly hold secrets, as *TOKEN, *SECRET*, *PASSWORD*"`
	Keep   []string `yaml:"keep" doc:"patterns of names to keep although drop names them"`
}

// Containers say how jobs with an image run.
type Containers struct {
	Runtime string   `yaml:"runtime" doc:"podman, apptainer, enroot or docker; empty: the first of them that is installed"`
	Program string   `yaml:"program" doc:"its path; empty: as it is found in PATH"`
	Args    []string `yaml:"args" doc:"options put before all others, for example --runtime=/usr/bin/crun"`
	Mounts  []string `yaml:"mounts" doc:"directories of which jobs may mount parts, work and home directories too; none: all that their users can read. It steers, and is no fence where users may call the runtime themselves"`
	Pull    Duration `yaml:"pull" doc:"how long the pull of an image may take"`
}

// Hooks are programs of the site.
type Hooks struct {
	Prolog  string   `yaml:"prolog" doc:"runs on each node before the first task, as the server's user; failing, it fails the launch"`
	Epilog  string   `yaml:"epilog" doc:"runs on each node after the last task"`
	Timeout Duration `yaml:"timeout" doc:"of each of them"`
}

// Notify says how mail leaves, and which URLs are told of jobs.
type Notify struct {
	Command []string `yaml:"command" doc:"program and arguments; called with -s SUBJECT ADDRESS, the text on standard input"`
	SMTP    SMTP     `yaml:"smtp" doc:"relay, instead of a command"`
	Domain  string   `yaml:"domain" doc:"appended to user names without one"`

	Webhooks    []Webhook `yaml:"webhooks" doc:"URLs that are told of all jobs"`
	JobWebhooks []string  `yaml:"job_webhooks" doc:"where webhooks that jobs name may lead (notify in the native form, cox submit --notify-url): public for any host at a public address, names of hosts for these at any address (hooks.example.org, *.example.org). []: jobs may have none"`
}

// Webhook is a URL that is told of all jobs.
type Webhook struct {
	URL        string   `yaml:"url" doc:"https or http; it may be a secret, then keep this file readable by the server alone"`
	On         []string `yaml:"on" doc:"begin, end (failures too), fail, node (fences and drains of nodes); default: all of jobs"`
	SecretFile string   `yaml:"secret_file" doc:"file that holds the key with which messages are signed (X-Coxswain-Signature: HMAC-SHA256 of the body); empty: no signature"`
}

// SMTP is a mail relay.
type SMTP struct {
	Addr         string `yaml:"addr" doc:"host:port"`
	From         string `yaml:"from" doc:"sender"`
	User         string `yaml:"user" doc:"for authentication; empty: none"`
	PasswordFile string `yaml:"password_file" doc:"file that holds the password; readable by the server alone"`
}

// Log says what is logged.
type Log struct {
	Level  string `yaml:"level" doc:"debug, info, warn or error"`
	Format string `yaml:"format" doc:"text or json"`
}

// Default is what holds where the file says nothing.
func Default() Config {
	state, socket := defaultPlaces(os.Getuid() == 0, os.Getenv)
	return Config{
		Name:       "cox",
		State:      State{Dir: state, Journal: Duration(30 * day), History: Duration(365 * day), Ranks: Duration(7 * day), Series: 1 << 30, Memory: Duration(5 * time.Minute)},
		Listen:     Listen{Socket: socket, TCP: "auto"},
		Gateway:    Gateway{Listen: "auto"},
		Room:       Room{GPUsPerNode: -1, GPUType: "gpu"},
		Jobs:       Jobs{Grace: Duration(30 * time.Second), Unkillable: Duration(time.Minute), Idle: Duration(10 * time.Minute), MaxArray: 100_001, Upload: 512 << 20, Uploads: 4 << 30, UploadRoom: 10 << 30, UploadKeep: Duration(7 * day)},
		Containers: Containers{Pull: Duration(30 * time.Minute)},
		Hooks:      Hooks{Timeout: Duration(5 * time.Minute)},
		Health:     defaultHealth(),
		Notify:     Notify{JobWebhooks: []string{notify.PublicHosts}},
		Log:        Log{Level: "info", Format: "text"},
	}
}

// defaultPlaces are the default state directory and socket.
func defaultPlaces(root bool, env func(string) string) (state, socket string) {
	if root {
		return "/var/lib/coxswain", "/run/coxswain/cox.sock"
	}
	base := cmp.Or(env("XDG_STATE_HOME"), filepath.Join(cmp.Or(env("HOME"), "/"), ".local", "state"))
	state = filepath.Join(base, "coxswain")
	if run := env("XDG_RUNTIME_DIR"); run != "" {
		return state, filepath.Join(run, "coxswain", "cox.sock")
	}
	return state, filepath.Join(state, "cox.sock")
}

// Files are the places where the file is looked for, best first.
func Files() []string {
	if os.Getuid() == 0 {
		return []string{"/etc/coxswain/cox.yaml"}
	}
	base := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(cmp.Or(os.Getenv("HOME"), "/"), ".config"))
	return []string{filepath.Join(base, "coxswain", "cox.yaml"), "/etc/coxswain/cox.yaml"}
}
