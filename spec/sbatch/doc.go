// Package sbatch reads Slurm batch scripts and sbatch's command line, and turns
// them into a job.
//
// Read applies sbatch's own rules to a script: which lines count, how they are
// split into words, and what options those words are. Parse goes on from there:
// it lays the command line over the environment (SBATCH_*) over the script's
// lines, checks every value, and fills a job.Spec.
//
// ParseAll also returns what is asked of the sbatch command itself (--parsable,
// --wait, --test-only), and Command takes a command line apart before the script is
// read. Render goes the other way: it writes any job as a batch script, and warns of
// what sbatch would understand otherwise.
//
// Equal headers and options give equal jobs. A job keeps the text of its directives
// in memory and nothing else of its script.
//
// The rules of reading, as sbatch has them:
//
//   - A directive is a line that starts with "#SBATCH", in capitals, at the first
//     column; a blank behind it is not needed. Reading ends at the first line that
//     is neither blank nor a comment. "##SBATCH" is a comment.
//   - Words are split at white space. Single and double quotes group and vanish; a
//     backslash takes the next character literally, inside quotes too, but does
//     not protect white space outside of them. An unquoted # starts a comment,
//     also in the middle of a word. A backslash at the end of a line is dropped:
//     it does not continue the line.
//   - An argument that is empty, such as "", ends its line.
//   - All words of a component form one argument list, as if given to a command:
//     several options a line, "-N1", "-N 1", "--nodes=1", "--nodes 1", clustered
//     letters, unambiguous beginnings of long names, and an option's argument on
//     the next line all work. "--" ends the options.
//   - A line that begins with the word "hetjob" (or "packjob") ends a component.
//     What stands behind that word is not read, on any line.
//   - Nothing is expanded: "$HOME" stays "$HOME", with a warning.
//   - The last of several values for an option holds, with a warning if they differ.
//
// What differs from sbatch, on purpose: an option that no version of sbatch knows
// is a warning if it is known to belong to a site's plugin, and an error with the
// nearest option otherwise (Options.Strict makes all of them errors, as sbatch does).
// #PBS and #BSUB lines are never read: a warning says so, and a script that has no others
// is refused (--ignore-pbs takes it).
//
// The package does no I/O: files that options name are read by Options.ReadFile.
package sbatch
