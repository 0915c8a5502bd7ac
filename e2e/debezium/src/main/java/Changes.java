import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/** Prints the values of a connector's events as JSON, one per line, until its input ends. The arguments are properties files. */
public final class Changes {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        for (String file : args) {
            try (Reader in = new FileReader(file, StandardCharsets.UTF_8)) {
                p.load(in);
            }
        }
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class).using(p)
            .notifying((events, committer) -> {
                for (ChangeEvent<String, String> e : events) {
                    out.println(e.value());
                    committer.markProcessed(e);
                }
                out.flush();
                committer.markBatchFinished();
            }).using((ok, message, error) -> { if (!ok) { System.err.println(message); if (error != null) error.printStackTrace(); } }).build();
        Thread t = new Thread(engine);
        t.start();
        while (System.in.read() >= 0) { }
        engine.close();
        t.join();
    }
}
