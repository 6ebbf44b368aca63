package submission

import "github.com/spf13/pflag"

// shapeFlags are those options of sbatch that people type most, under their own
// names. They become options of sbatch again.
type shapeFlags struct {
	nodes, array, name, time, partition, account, qos, depends, begin string
	tasks, gpus, cpus                                                 int
}

func (s *shapeFlags) add(fl *pflag.FlagSet) {
	fl.StringVarP(&s.nodes, "nodes", "N", "", "nodes, N or MIN-MAX")
	fl.IntVarP(&s.tasks, "ntasks", "n", 0, "tasks in all")
	fl.IntVar(&s.gpus, "gpus-per-node", 0, "GPUs of each node")
	fl.IntVarP(&s.cpus, "cpus-per-task", "c", 0, "CPUs of each task")
	fl.StringVarP(&s.time, "time", "t", "", "time limit, as sbatch spells it")
	fl.StringVarP(&s.partition, "partition", "p", "", "partition, or several joined by commas")
	fl.StringVarP(&s.account, "account", "A", "", "account that pays")
	fl.StringVarP(&s.qos, "qos", "q", "", "quality of service")
	fl.StringVarP(&s.name, "job-name", "J", "", "name of the job")
	fl.StringVarP(&s.array, "array", "a", "", "indices of an array, such as 0-15%4")
	fl.StringVarP(&s.depends, "dependency", "d", "", "wait for other jobs, such as afterok:7")
	fl.StringVarP(&s.begin, "begin", "b", "", "not before, such as now+1hour or 20:00")
}

// args are the options of sbatch for the flags that were given.
func (s *shapeFlags) args(fl *pflag.FlagSet) []string {
	var out []string
	fl.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "nodes", "time", "partition", "account", "qos", "job-name", "array", "dependency", "begin", "ntasks", "gpus-per-node", "cpus-per-task":
			out = append(out, "--"+f.Name+"="+f.Value.String())
		}
	})
	return out
}
