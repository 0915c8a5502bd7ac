package tsimport;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.runtime.execution.SuppressRestartsException;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs several "tsimport work" processes on a Flink cluster. They find their tasks in the job directory (docs/flink.md). */
public final class FlinkJob {
    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            throw new IllegalArgumentException("want: JOBDIR WORKERS TSIMPORT [FLAGS of tsimport work]");
        }
        int workers = Integer.parseInt(args[1]);
        Configuration conf = new Configuration();
        conf.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        // Flink counts the failures of all tasks, and in an outage of the service every task fails.
        conf.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 10 * workers);
        conf.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofSeconds(10));
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(conf);
        // Tasks of a batch job start and fail independently.
        env.setRuntimeMode(RuntimeExecutionMode.BATCH).setParallelism(workers);
        if (args[2].contains("://")) {
            env.registerCachedFile(args[2], Worker.CACHED, true);
        }
        env.fromSequence(0, workers - 1).map(new Worker(args)).name("tsimport work").sinkTo(new DiscardingSink<>());
        env.execute("tsimport " + args[0]);
    }

    /** Runs one process. */
    private static final class Worker extends RichMapFunction<Long, Long> {
        static final String CACHED = "tsimport";
        private static final Logger LOG = LoggerFactory.getLogger(FlinkJob.class);
        private final String[] args;
        private volatile String said = "";

        Worker(String[] args) {
            this.args = args;
        }

        @Override
        public Long map(Long number) throws Exception {
            String[] command = Arrays.copyOf(args, args.length + 1);
            boolean cached = args[2].contains("://");
            command[0] = cached ? getRuntimeContext().getDistributedCache().getFile(CACHED).getPath() : args[2];
            System.arraycopy(new String[] {"work", "--job-dir", args[0]}, 0, command, 1, 3);
            System.arraycopy(args, 3, command, 4, args.length - 3);
            Process worker = new ProcessBuilder(command).redirectErrorStream(true).start();
            Thread log = new Thread(() -> log(worker), "log of tsimport work");
            log.start();
            try {
                int code = worker.waitFor();
                log.join(1000);
                end(code);
                return number;
            } finally { // the process still runs if Flink interrupted this thread
                worker.destroy();
                try {
                    worker.waitFor(10, TimeUnit.SECONDS);
                } finally {
                    worker.destroyForcibly();
                }
            }
        }

        private void log(Process worker) {
            try (BufferedReader in = new BufferedReader(new InputStreamReader(worker.getInputStream(), StandardCharsets.UTF_8))) {
                for (String line; (line = in.readLine()) != null; said = line) {
                    LOG.info("{}", line);
                }
            } catch (IOException e) {
                LOG.warn("the output of tsimport work cannot be read", e);
            }
        }

        /** Throws unless the load is done. After exit codes that another attempt would repeat, Flink does not restart the task. */
        private void end(int code) throws Exception {
            if (code == 0 || code == 3) {
                return;
            }
            Exception failed = new IOException("tsimport work ended with exit code " + code + ": " + said);
            throw List.of(2, 4, 5, 6).contains(code) ? new SuppressRestartsException(failed) : failed;
        }
    }
}
