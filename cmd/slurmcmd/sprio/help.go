package sprio

const usageText = `Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]
   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]
`

const helpText = `Usage: sprio [OPTIONS]
      --federation                no effect: there is one cluster
  -h, --noheader                  no headers on output
  -j, --jobs                      comma separated list of jobs
                                  to view, default is all
      --local                     no effect
  -l, --long                      long report
  -n, --norm                      display normalized values
  -o, --format=format             format specification
      --sibling                   no effect
  -p, --partition=partition_name  comma separated list of partitions
  -S, --sort=fields               comma separated list of letters of -o
  -u, --user=user_name            comma separated list of users to view
  -v, --verbose                   no effect
  -V, --version                   output version information and exit
  -w, --weights                   show the weights for each priority factor

Example: sprio -l -S -Y -u anna

Help options:
  --help                          show this help message
  --usage                         display a brief summary of sprio options
`
