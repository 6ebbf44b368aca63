package sshare

import "fmt"

// usageText is for --usage and --help, which Slurm does not tell apart.
const usageText = `Usage:  sshare [OPTION]
  Valid OPTIONs are:
    -a or --all            list all users
    -A or --accounts=      display specific accounts (comma separated list)
    -e or --helpformat     print the fields that --format takes
    -l or --long           include normalized usage in output
    -m or --partition      a column for partitions, which is empty here
    -n or --noheader       omit header from output
    -o or --format=        comma separated list of fields, a width behind %
    -p or --parsable       '|' delimited output with a trailing '|'
    -P or --parsable2      '|' delimited output without a trailing '|'
    -u or --users=         display specific users (comma separated list)
    -U or --Users          display only user information
    -v or --verbose        display more information
    -V or --version        display tool version number
Example: sshare -l -A nlp -u anna

`

// printNames lists the fields, four a line.
func (q *query) printNames() {
	for i, f := range fields {
		switch {
		case i%4 == 0 && i > 0:
			q.Out.WriteByte('\n')
		case i > 0:
			q.Out.WriteByte(' ')
		}
		fmt.Fprintf(q.Out, "%-17s", f.name)
	}
	q.Out.WriteByte('\n')
}
