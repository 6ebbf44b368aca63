// Package joboutput is what cox and cox-top share about the output of jobs: how people
// name it (7, 7_3.5, 7.0.5), and the line that matters of a job that failed.
package joboutput
