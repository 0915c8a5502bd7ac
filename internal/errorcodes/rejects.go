package errorcodes

// rejects lists tsimport's own codes for rejected rows.
var rejects = []Entry{
	reject("AmbiguousEscape", "a backslash, quote or hexadecimal text in a dump can be read in two ways, and the "+
		"dialect does not say which",
		"say which program wrote the file with --dialect, or how with --escape; tsimport inspect shows what was found"),
	reject("BadChange", "--mode changes: the record does not say what it does to which row, or has a value whose type "+
		"is not known; no change after it was applied", "see the message: correct the connector or the record, give the "+
		"column a type (--type) or leave it out (--exclude), and repeat the changes from any earlier place"),
	reject("BadColumnName", "a cell of a record that has its own columns has a name that Tablestore does not take: "+
		"empty, longer than 255 bytes, or with other characters", "rename it with --rename, or leave it out with --exclude"),
	reject("BadJSON", "the line is not one JSON object, has a key twice, or a value of an exported row is not as "+
		"exports write it", "correct the line; see the byte that the message names"),
	reject("BadQuote", "a quoted field does not end, or text follows its closing quote",
		"correct the quotes, or say with --quote that the file has none"),
	reject("BadTypeTag", "a value of typed JSON (--format dynamodb or mongodb) contradicts its type: two types, none, "+
		"or a value that is not of the type", "correct the value; with --format jsonl the objects are loaded as text"),
	reject("BreaksOrder", "a part of splice(…) has a character that does not sort above the separator, so keys would "+
		"not be in the order of the parts", "use a lower separator, or splice(auto, …)"),
	reject("DuplicateCell", "the record has a column twice, with the same timestamp or without one, or `--rename` makes "+
		"two of its columns one", "leave one of them out"),
	reject("EmptyKey", "the first part of a computed key is empty, so all such rows would be in one place",
		"write `Name == \"\" ? \"none\" : Name` instead"),
	reject("ExpressionError", "an expression cannot be computed for this record",
		"see the message; tsimport explain computes an expression for one value"),
	reject("FolderDiffers", "with --path-columns, the record's own column and its folder give different values",
		"correct one of them, or load without --path-columns"),
	reject("InvalidUTF8", "the text is not valid in the file's encoding", "name the encoding with --encoding"),
	reject("KeyTooLong", "a primary-key column has more than 1,024 bytes", "shorten it, as with --pk 'id=md5(Name,16)'"),
	reject("NoAnswer", "the service was sent the row and has never said whether it was written; it may be in the table",
		"see whether it is there, or load the rejects again if a row may be written twice"),
	reject("NoCells", "an update of a row without a value would change nothing", "use --mode put, or leave them out"),
	reject("NoValue", "the row has no value in a column that --when compares",
		"give it a value, or leave it out of the condition"),
	reject("NotCanonical", "the text is a number that would not be written back the same, such as 007, and may be a code",
		"give the column a type: --type NAME=string keeps the text, NAME=integer or NAME=double its value"),
	reject("NullKey", "a primary-key column has no value", "give a value with ?? in the key's expression"),
	reject("OutOfRange", "the number, time or timestamp does not fit its type", "see the value; another --type may fit"),
	reject("OtherTable", "--mode changes: the change is of another table than those before it",
		"name the table with --source-table; changes of others are counted then"),
	reject("RaggedRecord", "the record has more or fewer fields than the header",
		"correct it: an unquoted delimiter or line end in a field is the usual reason"),
	reject("RecordTooLong", "the record is longer than the memory of the load allows",
		"correct the quotes of the file, or raise --memory"),
	reject("RowTooLarge", "the row is larger than a request may be",
		"leave columns out, or keep large values in an object store and load their addresses"),
	reject("SeamOfFiles", "the record repeats the header, or begins with a byte order mark: files were joined there",
		"nothing is missing if it is a header; a row after a byte order mark has to be loaded without the mark"),
	reject("TableChange", "--mode changes: the table was altered, truncated or dropped",
		"do the same to the table here, and continue with the changes after this one"),
	reject("TooManyColumns", "the row has more than 1,024 attribute columns",
		"leave columns out with --exclude, or name those to load with --columns"),
	reject("UnknownColumn", "the record has a member that no sampled record had", "name it with --columns or --exclude"),
	reject("UnknownName", "lookup(…) does not find the value in its file",
		"add it to the file, or keep unknown values with lookup(x, file, \"keep\")"),
	reject("ValueTooLong", "a value has more than 2 MiB", "leave the column out, or keep large values in an object store"),
	reject("WrongType", "the value is not of the column's type", "see the value; another --type may take it"),
}

func reject(code, cause, remedy string) Entry {
	return Entry{Code: code, Kind: Reject, Cause: cause, Remedy: remedy}
}

// answers lists the service's codes. Package client decides how a load reacts to each.
var answers = []Entry{
	answer("OTSAuthFailed", "the access key does not exist, the secret is wrong, the instance is not yours or not "+
		"running, it takes requests from its VPC only, or this machine's clock is off by more than 15 minutes",
		"see the message; check the profile or TABLESTORE_ACCESS_KEY_ID, the instance's name and its region, the VPC that "+
			"it is bound to (use its VPC endpoint from there), and the clock"),
	answer("OTSCapacityUnitExhausted", "the capacity of a partition is used up",
		"nothing; tsimport finds the rate. If it is always slow: docs/tuning.md"),
	answer("OTSConditionCheckFail", "the row in the table does not meet --condition or --when",
		"nothing, if that was meant; with --when such rows are counted, not rejected"),
	answer("OTSDataOutOfRange", "a row of a transaction belongs to another partition-key value",
		"tsimport makes no transactions; check any proxy between it and the service"),
	answer("OTSFlowControl", "the whole instance is over its capacity",
		"nothing; raise the instance's limit, or load when others do not"),
	answer("OTSForbiddenUpdateCapacityUnit", "this type of instance has no reserved throughput",
		"leave out --reserved-read and --reserved-write"),
	answer("OTSInternalServerError", "the service failed, and may have written the row",
		"nothing; if it lasts, give the request id to the vendor's support"),
	answer("OTSInvalidPK", "the primary key does not have the table's columns, order or types",
		"see tsimport table describe, and give --pk as the table has it"),
	answer("OTSMetaNotMatch", "the request does not agree with the table's description",
		"see whether the table was made again meanwhile; start over with --fresh"),
	answer("OTSMethodNotAllowed", "the endpoint is not a Tablestore, or a proxy changes requests", "check --endpoint"),
	answer("OTSMissingHeader", "a proxy removes headers of requests", "go around it, or have it pass all x-ots- headers"),
	answer("OTSNoPermissionAccess", "the access key may not do this",
		"give its user AliyunOTSFullAccess or a policy with the operation that the message names"),
	answer("OTSNotEnoughCapacityUnit", "the capacity of a partition is used up",
		"nothing; tsimport finds the rate. If it is always slow: docs/tuning.md"),
	answer("OTSObjectAlreadyExist", "another process has made the table meanwhile",
		"give the same command again: it loads into that table if the key is the same"),
	answer("OTSObjectNotExist", "the table does not exist, or not any more",
		"check its name, the instance and the region, or add --create"),
	answer("OTSOperationThrottled", "the service asks for fewer requests", "nothing; tsimport slows down"),
	answer("OTSOutOfColumnCountLimit", "the row has too many columns", "leave columns out with --exclude"),
	answer("OTSOutOfRowSizeLimit", "the row is too large", "leave columns out, or keep large values in an object store"),
	answer("OTSOutOfTransactionDataSizeLimit", "a transaction holds too much",
		"tsimport makes no transactions; check any proxy between it and the service"),
	answer("OTSParameterInvalid", "the service refuses something in the request: a value too long, a timestamp out of "+
		"the table's range, or a flag that it does not support", "see the message and the row in the rejects"),
	answer("OTSPartitionUnavailable", "a partition is moving or splitting", "nothing; it serves again within seconds"),
	answer("OTSPermissionDenied", "the access key may not do this",
		"give its user AliyunOTSFullAccess or a policy with the operation that the message names"),
	answer("OTSQuotaExhausted", "the instance has as many tables as it may, or has had too many operations on tables "+
		"within a second", "delete tables or raise the quota; too frequent operations are tried again"),
	answer("OTSRequestBodyTooLarge", "the request has more than the service or a gateway takes",
		"nothing; requests get smaller. --batch-bytes bounds them from the beginning"),
	answer("OTSRequestTimeout", "the service did not get the whole request in time",
		"nothing; a slow link gets smaller requests. See docs/tuning.md"),
	answer("OTSRowOperationConflict", "another request is changing the same row",
		"nothing; see who else writes to the table if it lasts"),
	answer("OTSServerBusy", "the service is busy, or a partition is over its capacity",
		"nothing; tsimport slows down. If it is always slow: docs/tuning.md"),
	answer("OTSServerUnavailable", "the service cannot be reached past its gateway, and may have written the row",
		"nothing; it waits for up to --retry-for"),
	answer("OTSSessionBusy", "another request uses the transaction",
		"tsimport makes no transactions; check any proxy between it and the service"),
	answer("OTSSessionNotExist", "the transaction is over",
		"tsimport makes no transactions; check any proxy between it and the service"),
	answer("OTSStorageServerBusy", "the storage of the service is busy", "nothing; tsimport slows down"),
	answer("OTSTableNotReady", "the table was made just now", "nothing; it serves within a minute"),
	answer("OTSTimeout", "the service did not finish in time, and may have written the row",
		"nothing; it waits for up to --retry-for"),
	answer("OTSTooFrequentReservedThroughputAdjustment", "reserved throughput was changed less than two minutes ago",
		"nothing; it is tried again"),
	answer("OTSUnsupportedOperation", "this instance, or the embedded store, does not have the operation",
		"see docs/engine.md for what the embedded store has, or the vendor's page of the instance's type"),
}

func answer(code, cause, remedy string) Entry {
	return Entry{Code: code, Kind: Service, Cause: cause, Remedy: remedy}
}
