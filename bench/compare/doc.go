// Package compare compares two measurements. Files of results come in, each as JSON, samples or Go's benchmark
// format; for each number that both have, the change goes out and whether it is more than chance. It promises to call
// nothing significant that has too few samples to tell, and that seconds of one run that go up and down together count as
// few. It does not know how anything was measured.
package compare
