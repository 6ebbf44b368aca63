package api

// Lists of jobs can be had as text: GET /v1/jobs with the parameter columns and
// the Accept type TSV answers with one line per job, columns in the order asked
// for, separated by tabs. Tab, newline, carriage return and backslash inside of a
// value are written as \t, \n, \r and \\ (AppendTSV, UnescapeTSV). It is what the fast commands use: no job is decoded that is
// not shown.

// TSV is the media type of lists as text.
const TSV = "text/tab-separated-values"

// NextHeader has the cursor of the next page of a list as text.
const NextHeader = "Cox-Next"

// Column is a column of a list of jobs.
type Column struct{ Name, Doc string }

// Columns lists the columns of jobs, in the order of documentation. Times are Unix
// seconds (0: none), durations seconds, memory bytes, sets joined by commas.
func Columns() []Column { return append([]Column(nil), columns...) }

var columns = []Column{
	{"id", "number"},
	{"name", "as shown: 7, 7_3; 7_[1-4,9%2] where tasks are collapsed"},
	{"array_job", "number of the array, 0: none"},
	{"array_task", "index in the array, or the collapsed set"},
	{"array_limit", "tasks of the array that may run at once, 0: no limit"},
	{"het_size", "components of a heterogeneous job, 1: it is none"},
	{"job_name", "name that the user gave"},
	{"user", "owner"},
	{"uid", "owner's number"},
	{"gid", "owner's group"},
	{"account", ""},
	{"qos", ""},
	{"pool", "whose nodes it has, or waits for"},
	{"partition", "asked for, joined by commas, or the one it runs in"},
	{"state", "long name of the base state"},
	{"flags", "CONFIGURING and the like"},
	{"reason", "code of the first reason why it waits"},
	{"reason_text", "the reason as a sentence"},
	{"priority", ""},
	{"nice", ""},
	{"submitted", ""},
	{"eligible", ""},
	{"started", ""},
	{"ended", ""},
	{"begin", "not to begin before"},
	{"deadline", ""},
	{"starts_by", "promised start of a job that waits"},
	{"time_limit", "0: none"},
	{"time_min", ""},
	{"attempt", ""},
	{"exit_status", ""},
	{"exit_signal", ""},
	{"nodes_min", "nodes asked for, or held"},
	{"nodes_max", ""},
	{"node_list", "held or last held, as a host list"},
	{"req_nodes", "asked for by name"},
	{"exc_nodes", "excluded"},
	{"batch_host", "node of the batch script"},
	{"tasks", ""},
	{"cpus", "claimed or asked for in all"},
	{"cpus_per_task", ""},
	{"tasks_per_node", ""},
	{"memory", "asked for as Slurm counts it: per node"},
	{"memory_per_cpu", ""},
	{"gpus", "claimed or asked for in all"},
	{"gres", "as Slurm writes it per node: gres/gpu:h100:8"},
	{"tres", "cpu=,mem=,node=,gres/gpu= in all"},
	{"features", "constraint as written"},
	{"licenses", ""},
	{"reservation", ""},
	{"dependency", "as sbatch spells it, what is not yet met"},
	{"requeue", "1: may run again"},
	{"contiguous", "1: yes"},
	{"exclusive", "1: whole nodes"},
	{"comment", ""},
	{"command", "script or command, as named"},
	{"work_dir", ""},
	{"stdin", "expanded"},
	{"stdout", "expanded"},
	{"stderr", "expanded"},
	{"submit_host", ""},
	{"script_hash", ""},
	{"message", "how the last attempt went wrong"},
}
