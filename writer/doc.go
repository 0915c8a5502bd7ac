// Package writer sends rows. The rows of one batch come in as PlainBuffer bytes (Writer.Write); one outcome for each row goes
// out. Rows that cannot be repeated safely get a mark or a timestamp first, and are looked for before they are sent again. It
// promises that each row gets exactly one outcome, that a request refused for its content is halved until the bad row is alone,
// and that no row counts as written unless the service says so. It does not wait, does not decide when to retry, and knows
// nothing of files, lanes and rates.
package writer
