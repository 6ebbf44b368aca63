// Package tutorial runs the commands of the pages under docs/tutorial and compares what they
// print with what the pages show. It holds tests only.
//
// A page is read from top to bottom by one shell. Three things in it count:
//
//   - A block ```console: a line that begins with "$ " is a command, and the lines below it, up to
//     the next command, are the output that the page promises. Standard error counts as output.
//     The order of lines does not count, since ranks write at the same time. "…" in a line stands
//     for any text, a line "…" for any lines. Times, durations and sizes are equal to any other.
//   - A block with a title, as in ```sh title="train.sbatch", is written to the file of that name.
//   - A comment <!-- run: COMMAND --> is run and not shown; <!-- fails --> lets the next command
//     end with an exit code other than 0.
//
// Other blocks are not run.
package tutorial
